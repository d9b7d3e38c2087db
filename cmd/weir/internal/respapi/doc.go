// Package respapi serves the protocol of Redis, RESP2 and RESP3, so that any Redis
// client is a client of weir. docs/resp.md describes the commands to their users.
//
// A [Server] reads what a client has sent, decides all commands that are complete as one
// batch ([weir.Engine.DoAll]), and writes the replies. On Linux, if commands are decided in
// memory, a few loops with epoll serve all connections without TLS: this takes about half
// of the processor time of a goroutine for each connection. All other connections have a
// goroutine each, because a decision of a store waits for the network. The pieces are
//
//	scan.go      bytes → commands
//	reply.go     replies → bytes, in RESP2 or RESP3
//	conn.go      a connection and its goroutine: reads, batches, deadlines, the end
//	loop_….go    many connections on one goroutine: poll_….go waits for events,
//	             descriptor_….go takes connections from the runtime
//	commands.go  the table of commands
//	session.go   the commands about the connection: HELLO, AUTH, CLIENT
//	describe.go  COMMAND and INFO
//	decide.go    WEIR.TAKE and the other verbs, WEIR.USAGE
//	throttle.go  CL.THROTTLE
//
// # Bounds
//
// A command has at most 256 arguments of 16 KiB, and 256 KiB in all. A batch has at most
// 1000 commands. A command that exceeds its bounds ends the connection with an error.
// Further commands wait for the next batch. A client that sends half a command has some
// seconds for the rest. The memory of a connection is at most a few times the bytes of
// the largest command.
package respapi
