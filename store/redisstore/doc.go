// Package redisstore keeps counters in Redis or Valkey, for several processes
// that share them. One script decides all ops of a call in one step, on the
// server's clock; on a cluster it is one step a slot, see [Store.Do].
package redisstore
