package koala

// maxWarnings is where the reading of a hopeless file stops to note more.
const maxWarnings = 10_000
