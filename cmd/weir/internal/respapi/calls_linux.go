//go:build !386

package respapi

import "syscall"

// The numbers of recvfrom and sendto. These take about a twentieth less time than read and
// write, which first find out that they are called for a socket.
const (
	sysReceive = syscall.SYS_RECVFROM
	sysSend    = syscall.SYS_SENDTO
)
