// Package events turns what decisions, stores and reloads report into events, and delivers them to
// streams ([Hub.Subscribe]) and to webhooks.
//
// # The way of an event
//
//	decision ─► watcher ─► queue ─► Hub.Run ─► history ─► ring ─► streams
//	                                      └──► outbox of each webhook ─► sender
//
// A decision pays for a few comparisons. Only one that is an event takes a lock, to append to the queue,
// which is bounded: when it is full, the event is dropped and counted. All that follows is on goroutines of
// the Hub.
//
// With a data directory or a shared store, the history and the outboxes are registers of package
// kept, written in batches. An event is in them under its id, so that the same event of two instances is
// there once. Webhooks are served by one instance at a time, the one that holds the lease
// ([leader]): it sends what is in an outbox in the order of the register, and removes what was delivered. When
// it dies, another instance takes the lease within 15 seconds and sends what is left. Without a register
// the outboxes are in memory.
//
// # What may be lost
//
//   - What was in the queue or waited to be written: a kill loses the last second.
//   - What exceeds a bound; [Hub.Dropped] counts it.
//   - During an outage of the store: events wait in memory, 10,000 at most. The events about the outage itself go
//     to webhooks directly, from memory.
//
// # Ids
//
// An id is a hash of what happened. For the events of a key in a window it has the end of the window, or for
// windows without an end the number of whole lengths of the window since 1970. Therefore an instance that reports an event again,
// after a restart or because a table has forgotten it, does so under the same id. If --log-keys hides keys, the id is an HMAC under
// WEIR_LOG_KEYS_SECRET or the secret of the store, so that nobody can find the key of an event by trying keys. Ids change when
// the secret does.
package events
