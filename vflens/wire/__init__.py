"""gRPC: channel options, codec, links. Imported before anything imports grpc: gRPC reads its settings once.

The event engine's own threads cost a third of the speed of small messages; fork support is not needed.
"""

import os

from vflens.wire.allocator import keep_large_blocks

os.environ.setdefault("GRPC_EXPERIMENTS", "-event_engine_client,-event_engine_listener")
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

# Arrow's own allocator keeps three times what a table's text takes; the process's reuses it.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")

keep_large_blocks()
