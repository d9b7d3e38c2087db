package koalafile

// Shanghai is the zone of koala's natural day, on a machine that loads zones
// with load.
var Shanghai = zone
