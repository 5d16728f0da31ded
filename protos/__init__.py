"""The wire's messages: ``vfl.proto`` and the modules generated from it (``make proto``)."""
