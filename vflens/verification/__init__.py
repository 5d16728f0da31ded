"""Estimates and classifiers solved again from their definitions, in CVXPY: the extra ``verify``."""

from vflens.errors import ConfigError, install_extra

try:
    import cvxpy as cvxpy
except ImportError:
    raise ConfigError(f"verification needs CVXPY: {install_extra('verify')}") from None
