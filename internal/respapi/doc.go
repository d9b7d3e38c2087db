// Package respapi serves the protocol of Redis, RESP2 and RESP3, so that any Redis
// client is a client of weir. docs/resp.md describes the commands to their users.
//
// A [Server] reads what a client has sent, decides all commands that are complete as one
// batch ([weir.Engine.DoAll]), and writes the replies. On Linux, if commands are decided in
// memory, a few loops serve all connections without TLS, with epoll: this takes about half
// of the processor time. Otherwise each connection has a goroutine, because a decision
// waits for the network. The pieces are
//
//	scan.go      bytes → commands
//	reply.go     replies → bytes, in RESP2 or RESP3
//	conn.go      a connection and its goroutine: reads, batches, deadlines, the end
//	loop_….go    many connections on one goroutine
//	commands.go  the table of commands, and those about the connection
//	decide.go    WEIR.TAKE and the other verbs, WEIR.USAGE
//	throttle.go  CL.THROTTLE
//
// # Bounds
//
// A command has at most 256 arguments of 16 KiB, and 256 KiB in all. A batch has at most
// 1000 commands. What goes beyond the first bounds ends the connection with an error.
// A client that sends half a command has some seconds for the rest. The memory of a
// connection is at most some times the bytes of the largest command.
package respapi
