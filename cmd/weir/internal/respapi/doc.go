// Package respapi serves the protocol of Redis, RESP2 and RESP3, so that any Redis
// client is a client of weir. docs/reference/resp.md describes the commands to their users.
//
// A [Server] reads what a client has sent, decides all commands that are complete as one
// batch ([weir.Engine.DoAll]), and writes the replies. Each connection has a goroutine. The
// files are
//
//	scan.go         bytes → commands
//	reply.go        replies → bytes, in RESP2 or RESP3
//	conn.go         a connection and its goroutine: reads, batches, deadlines, the end
//	commands.go     the table of commands, and COMMAND and INFO
//	session.go      the commands about the connection: HELLO, AUTH, CLIENT
//	decide.go       WEIR.TAKE and the other verbs, WEIR.USAGE
//	throttle.go     CL.THROTTLE
//	transaction.go  MULTI, EXEC and DISCARD
//
// # Resource limits
//
// A command has at most 256 arguments of 16 KiB, and 256 KiB in all. A batch has at most
// 1000 commands. A command that exceeds its limits ends the connection with an error. Further
// commands wait for the next batch. A client that sends a part of a command has some seconds in
// total for the rest. The memory of a connection is at most a few times the bytes of the largest
// command, and between commands at most 16 KiB of each buffer. Commands and transactions above
// 64 KiB share the memory of large requests.
//
// If clients need a token, an unauthenticated client may send 4 KiB without a complete command,
// and has some seconds in total for the token. After that the connection ends. At the connection
// limit, unauthenticated clients are closed first. Their replies are written 4 KiB at a time.
package respapi
