"""Estimates and classifiers solved again from their definitions, in CVXPY: the extra ``verify``."""

from vflens.errors import ConfigError

try:
    import cvxpy as cvxpy
except ImportError:
    raise ConfigError("verification needs CVXPY: install the extra, pip install 'vflens[verify]'") from None
