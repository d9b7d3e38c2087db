package weir

// Reports are the numbers of what local memory counted in outages, which is
// recorded in the store afterwards: see [WithLocal]. A distinct member counts
// as one hit. The zero value means that there was no outage.
type Reports struct {
	// Pending is the number of keys and members that wait for a report. It includes
	// those of an earlier process if the local store keeps its counters, as [durable.Store] does.
	Pending int

	// Recorded is the number of hits that were recorded in the store. Lost is
	// the number of those in reports without an answer: the store may have
	// counted them, so they are not sent again. Lost includes hits of an earlier process
	// of which it is not known whether they were sent.
	Recorded, Lost int64

	// Dropped is the number of hits that are not reported, because 100,000 keys
	// waited already, or because the engine was closed meanwhile and the local store does
	// not keep its counters.
	Dropped int64
}

// Reports returns the numbers of the engine's reports since it was made.
func (e *Engine) Reports() Reports {
	if e == nil {
		return Reports{}
	}
	return Reports(e.driver.Reports())
}
