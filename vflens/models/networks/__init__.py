"""Split networks in torch, the extra ``deep``: importing this package without torch is one clear sentence."""

from vflens.errors import ConfigError, install_extra

try:
    import torch
except ImportError:
    raise ConfigError(f"split networks need torch: {install_extra('deep')}") from None

torch.set_num_threads(1)  # one numeric thread per process: the same bits in every mode
