"""How uncertainties are judged: verdicts, intervals and scores behind closed doors."""
