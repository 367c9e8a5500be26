import re

from lodl.losses._verdicts import VERDICTS


def test_each_verdict_has_a_name_and_an_advice_of_its_own():
    assert len({verdict.name for verdict in VERDICTS}) == len(VERDICTS)
    assert len({verdict.advice for verdict in VERDICTS}) == len(VERDICTS)


def test_conditions_and_advice_are_sentences():
    for verdict in VERDICTS:
        assert re.fullmatch(r"[A-Z].*\.", verdict.condition)
        assert re.fullmatch(r"[A-Z].*\.", verdict.advice)
