"""What ``vflens certs`` does, by subject.

* :mod:`vflens.services.certificates.owner` – whose certificates: a party's or an operator's.
* :mod:`vflens.services.certificates.make` – keys, certificates and requests drawn.
* :mod:`vflens.services.certificates.sign` – requests signed by an authority.
* :mod:`vflens.services.certificates.trust` – certificates of peers and authorities taken into trust.
* :mod:`vflens.services.certificates.read` – what certificates say, and a party's tried on its peers.
"""
