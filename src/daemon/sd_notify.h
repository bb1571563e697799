/* sd_notify.h - tell the service manager how far we are: sd_notify(3), the part that we need. */
#ifndef WEFT_DAEMON_SD_NOTIFY_H
#define WEFT_DAEMON_SD_NOTIFY_H

/* "READY=1", "STOPPING=1". Does nothing if $NOTIFY_SOCKET is not set. */
void weft_sd_notify(const char *state);

#endif
