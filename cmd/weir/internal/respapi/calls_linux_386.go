package respapi

// The numbers of recvfrom and sendto, which package syscall does not have here.
const (
	sysReceive = 371
	sysSend    = 369
)
