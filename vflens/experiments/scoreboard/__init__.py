"""The scoreboard: every installed attack against every installed defence, on several data sets, as one page.

:mod:`.grid` says which federations are run, :mod:`.cells` runs what is missing and keeps each attack's result
under a digest of its settings and code, :mod:`.verdicts` states in words what the results mean, :mod:`.page`
writes ``docs/scoreboard.md``. ``make scoreboard`` runs it.
"""
