"""The scoreboard: every installed attack against every installed defence, on several data sets, as one page.

``grid`` says which federations are run, ``cells`` runs what is missing and keeps each attack's result
under a digest of its settings and code, ``verdicts`` states in words what the results mean, ``page``
writes ``docs/scoreboard.md``. ``make scoreboard`` runs it.
"""
