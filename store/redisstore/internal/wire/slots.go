package wire

import "bytes"

// slotCount is the number of slots that a cluster divides its keys into.
const slotCount = 16384

// SlotOf returns the cluster slot of a key: a checksum of the text between its
// first { and the next }, or of the whole key when there is no such text.
func SlotOf(key []byte) int {
	if from := bytes.IndexByte(key, '{'); from >= 0 {
		if n := bytes.IndexByte(key[from+1:], '}'); n > 0 {
			key = key[from+1 : from+1+n]
		}
	}
	return SlotOfTag(key)
}

// SlotOfTag returns the slot of the keys with this text between their first { and }.
func SlotOfTag(tag []byte) int { return int(crc16(tag) % slotCount) }

// crc16 returns the CRC-16/XMODEM of b, which the cluster specification uses.
func crc16(b []byte) (sum uint16) {
	for _, c := range b {
		sum = sum<<8 ^ crcTable[byte(sum>>8)^c]
	}
	return sum
}

var crcTable = makeCRCTable()

func makeCRCTable() (table [256]uint16) {
	for i := range table {
		sum := uint16(i) << 8
		for range 8 {
			carry := sum&0x8000 != 0
			sum <<= 1
			if carry {
				sum ^= 0x1021
			}
		}
		table[i] = sum
	}
	return table
}
