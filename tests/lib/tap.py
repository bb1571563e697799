"""tap.py - a registry of cases and a loop that prints TAP.

A case passes by returning, is skipped by skip(), and fails by any other exception or by
outliving its limit. "# running NAME" precedes each: who ends this program knows what it was at.

Some cases share a process under test. When that is dead, the case that saw it fails for this reason,
and the others are not run (watch())."""
import signal
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

import signals

cases = []
watched = []            # death(failed) of each process that lives longer than a case

signals.ignore_alone()


class Skip(Exception):
    pass


def skip(reason):
    raise Skip(reason)


def case(name, limit_s=180):
    def add(body):
        cases.append((name, limit_s, body))
        return body
    return add


def say(*lines):
    """All at once: what several threads say is not mixed."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


def comments(text):
    return [f"# {line}" for line in str(text).splitlines()]


def diag(text):
    say(*comments(text))


def watch(death):
    """Ask death(failed) after each case: how that process died, "" while it lives."""
    watched.append(death)


def unwatch(death):
    watched.remove(death)


def deaths(failed):
    return "\n".join(filter(None, (death(failed) for death in list(watched))))


def announce(name):
    say(f"# running {name}")


def report(number, name, wrong, skipped=""):
    say(f"{'not ok' if wrong else 'ok'} {number} - {name}{skipped and f' # SKIP {skipped}'}",
        *comments(wrong))


def on_alarm(_signal, _frame):
    raise TimeoutError("the case outlived its limit")


def attempt(limit_s, body, after):
    """Run a case. Returns (why it was skipped, what is wrong with it), or two empty strings."""
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(limit_s)
    try:
        body()
        after()
    except Skip as why:
        return str(why), ""
    except Exception:
        return "", traceback.format_exc()
    finally:
        signal.alarm(0)
    return "", ""


def run_one(number, name, limit_s, body, after):
    """Returns (whether it passed, whether what the cases share is dead)."""
    announce(name)
    skipped, wrong = attempt(limit_s, body, after)
    dead = deaths(failed=bool(wrong))
    wrong = dead or wrong       # what a case says of a peer that is dead is no news
    report(number, name, wrong, skipped)
    return not wrong, bool(dead)


def choose():
    """All cases, or those with a word of the command line in their names."""
    wanted = sys.argv[1:] or [""]
    return [c for c in cases if any(word in c[0] for word in wanted)]


def run(after=lambda: None):
    """Run the cases. Exit status."""
    chosen, passed = choose(), 0
    say(f"1..{len(chosen)}")
    for number, case_ in enumerate(chosen, 1):
        fine, dead = run_one(number, *case_, after)
        passed += fine
        if dead and number < len(chosen):
            say(f"Bail out! {len(chosen) - number} cases were not run: what they need is dead")
            break
    return 0 if chosen and passed == len(chosen) else 1


def outcome(chosen):
    """What is wrong with a case: nothing, or the traceback."""
    announce(chosen[0])
    try:
        chosen[2]()
    except Exception:
        return traceback.format_exc()
    return ""


def run_wide(workers):
    """Run the cases several at a time: those that share nothing, wait much and bound their waits
    themselves. Exit status."""
    chosen, failed = choose(), 0
    say(f"1..{len(chosen)}")
    with ThreadPoolExecutor(workers) as pool:
        for number, wrong in enumerate(pool.map(outcome, chosen), 1):
            report(number, chosen[number - 1][0], wrong)
            failed += bool(wrong)
    return 1 if failed or not chosen else 0
