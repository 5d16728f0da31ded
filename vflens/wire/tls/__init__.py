"""Mutual TLS: each end proves federation, role and name with a certificate.

* :mod:`vflens.wire.tls.subject` – whom a certificate names.
* :mod:`vflens.wire.tls.issue` – keys, certificates, requests, authorities.
* :mod:`vflens.wire.tls.trust` – the certificates that a party trusts.
* :mod:`vflens.wire.tls.identity` – a party's own certificate, checked, and read anew when its file changes.
* :mod:`vflens.wire.tls.counterpart` – what a party demands of one peer.
* :mod:`vflens.wire.tls.caller` – who is at the other end of a connection that a server accepted.
* :mod:`vflens.wire.tls.signing` – statements that a party signs, for others to show later.
* :mod:`vflens.wire.tls.probe` – connections apart from gRPC, which show what it does not tell.
"""
