# shellcheck shell=bash
# kernel.sh - sourced: kernel_words, the words that every guest's kernel is booted with.

kernel_words="console=ttyS0 quiet mitigations=off nokaslr panic=-1 random.trust_cpu=on tsc=reliable"
# On a busy machine an emulated timer may be too late for the test that Linux gives it.
kernel_words+=" no_timer_check"
# These three report a processor that got no time. In a guest that says how busy the machine around
# it is. Tasks that hang, which tell of I/O that does not come back, are still reported.
kernel_words+=" nosoftlockup rcupdate.rcu_cpu_stall_suppress=1 workqueue.watchdog_thresh=0"
