// Package respapi serves the protocol of Redis, RESP2 and RESP3, so that any Redis
// client is a client of weir. docs/resp.md describes the commands to their users.
//
// A [Server] has one goroutine for each connection. The goroutine reads what the client
// has sent, decides all commands that are complete as one batch ([weir.Engine.DoAll]),
// and writes the replies. The pieces are
//
//	scan.go      bytes → commands
//	reply.go     replies → bytes, in RESP2 or RESP3
//	conn.go      the loop of a connection: reads, batches, deadlines, the end
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
