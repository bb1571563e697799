/* socket.h - what every NVMe/TCP socket is set to. */
#ifndef WEFT_TRANSPORT_TCP_SOCKET_H
#define WEFT_TRANSPORT_TCP_SOCKET_H

#include <sys/socket.h>

/* A listening socket, non-blocking. */
int tcp_listen_socket(const struct sockaddr_storage *addr);
/* No delay for small PDUs; a peer that vanished without a word is noticed. */
int tcp_set_connection_options(int fd);
/* What was not sent when the socket is closed is dropped. A host needs that: a write that it has
 * sent again on another connection, and perhaps overwritten since, must not arrive from this
 * one. */
int tcp_set_abortive(int fd);

#endif
