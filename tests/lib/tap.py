"""tap.py - a registry of cases and a loop that prints TAP.

A case passes by returning, is skipped by skip(), and fails by any other exception or by
outliving its limit."""
import signal
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor

cases = []


class Skip(Exception):
    pass


def skip(reason):
    raise Skip(reason)


def case(name, limit_s=60):
    def add(body):
        cases.append((name, limit_s, body))
        return body
    return add


def diag(text):
    for line in str(text).splitlines():
        print(f"# {line}", flush=True)


def on_alarm(_signal, _frame):
    raise TimeoutError("the case outlived its limit")


def run_one(number, name, limit_s, body, after):
    signal.signal(signal.SIGALRM, on_alarm)
    signal.alarm(limit_s)
    try:
        body()
        after()
    except Skip as why:
        print(f"ok {number} - {name} # SKIP {why}", flush=True)
    except Exception:
        print(f"not ok {number} - {name}", flush=True)
        diag(traceback.format_exc())
        return False
    else:
        print(f"ok {number} - {name}", flush=True)
    finally:
        signal.alarm(0)
    return True


def choose():
    """All cases, or those with a word of the command line in their names."""
    wanted = sys.argv[1:] or [""]
    return [c for c in cases if any(word in c[0] for word in wanted)]


def run(after=lambda: None):
    """Run the cases. Exit status."""
    chosen = choose()
    print(f"1..{len(chosen)}", flush=True)
    results = [run_one(n, *c, after) for n, c in enumerate(chosen, 1)]
    return 0 if all(results) and results else 1


def outcome(chosen):
    """What is wrong with a case: nothing, or the traceback."""
    try:
        chosen[2]()
    except Exception:
        return traceback.format_exc()
    return ""


def run_wide(workers):
    """Run the cases several at a time: those that share nothing, wait much and bound their waits
    themselves. Exit status."""
    chosen, failed = choose(), 0
    print(f"1..{len(chosen)}", flush=True)
    with ThreadPoolExecutor(workers) as pool:
        for number, wrong in enumerate(pool.map(outcome, chosen), 1):
            print(f"{'not ok' if wrong else 'ok'} {number} - {chosen[number - 1][0]}", flush=True)
            diag(wrong)
            failed += bool(wrong)
    return 1 if failed or not chosen else 0
