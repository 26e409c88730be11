"""Notes that fell wait for the next candidate, and the state of it all stays small."""

import json

from skillopt_hook_skill_aware.waiting import STATE_LIMIT, Waiting, digest


def test_nothing_waits_at_first():
    waiting, given_up = Waiting.read({}).settled(())
    assert (dict(waiting.notes), given_up) == ({}, ())


def test_a_state_comes_back_as_it_was_saved():
    waiting = Waiting({"b": 1, "a": 0}, tried="x", asked=3, merged=2)
    assert Waiting.read(json.loads(json.dumps(waiting.as_json()))) == waiting
    assert list(waiting.as_json()["notes"]) == ["b", "a"]


def test_kept_notes_wait_no_more():
    waiting = Waiting({"a": 0}, tried=digest(["old", "a"]))
    settled, given_up = waiting.settled(("old", "a"))
    assert (dict(settled.notes), given_up, settled.tried) == ({}, (), "")
    merged = Waiting({"a": 0, "b": 0}, tried=digest(["a and b"]), asked=2, merged=1)
    settled, given_up = merged.settled(("a and b",))
    assert (dict(settled.notes), given_up, settled.asked) == ({}, (), 1)


def test_fallen_notes_wait_and_those_that_fell_twice_are_given_up():
    waiting = Waiting({"a": 1, "b": 0}, tried=digest(["a", "b"]))
    settled, given_up = waiting.settled(())
    assert (dict(settled.notes), given_up) == ({"b": 1}, ("a",))
    again, given_up = settled.settled(())  # no candidate in between: nothing has fallen
    assert (dict(again.notes), given_up) == ({"b": 1}, ())


def test_a_note_that_came_into_the_skill_another_way_waits_no_more():
    settled, given_up = Waiting({"a": 0, "b": 0}, tried=digest(["a", "b"])).settled(("A.",))
    assert (dict(settled.notes), given_up) == ({"b": 1}, ())


def test_merging_is_asked_for_above_the_threshold_and_when_the_list_has_grown():
    assert [Waiting({}).grown(count, 3) for count in (2, 3, 4)] == [False, False, True]
    assert not Waiting({}).grown(100, 0)
    assert [Waiting({}, asked=6).grown(count, 3) for count in (5, 6, 7)] == [False, False, True]


def test_what_waits_stays_below_what_a_plugin_may_save():
    notes = [f"{number} " + "\u65e5" * 480 for number in range(40)]
    waiting = Waiting({"first": 1}).with_notes(notes)
    assert len(json.dumps(waiting.as_json())) < STATE_LIMIT + 200
    assert list(waiting.notes)[:3] == ["first", *notes[:2]]
    assert len(waiting.notes) < 40
