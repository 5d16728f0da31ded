"""gRPC: channel options, codec, links. Imported before anything imports grpc: gRPC reads its settings once.

The event engine's own threads cost a third of the speed of small messages; fork support is not needed.
"""

import os

os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
