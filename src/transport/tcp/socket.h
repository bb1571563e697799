/* socket.h - socket options of NVMe/TCP. */
#ifndef WEFT_TRANSPORT_TCP_SOCKET_H
#define WEFT_TRANSPORT_TCP_SOCKET_H

#include <sys/socket.h>

/* A listening socket, non-blocking. */
int tcp_listen_socket(const struct sockaddr_storage *addr);
/* No delay for small PDUs; TCP keep-alive notices a peer that vanished. */
int tcp_set_connection_options(int fd);
/* Closing the socket drops what was not sent. A host needs that: a write that it has sent again on
 * another connection, and perhaps overwritten since, must not arrive from this one. */
int tcp_set_abortive(int fd);

#endif
