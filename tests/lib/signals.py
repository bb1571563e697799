"""signals.py - what a test starts has every signal at its default.

nohup, and a shell that starts jobs in the background, ignore signals for all that they start, and
what those start in turn. A handler, unlike SIG_IGN, does not survive exec: one that does nothing
keeps the signal ignored here, and not there."""
import signal

PYTHONS = (signal.SIGPIPE, signal.SIGXFSZ)      # Python ignores these itself; subprocess resets them


def ignore_alone():
    """Signals that this process ignores are not ignored by its children."""
    for number in signal.valid_signals() - set(PYTHONS):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
