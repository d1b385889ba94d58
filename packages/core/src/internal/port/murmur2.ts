/** The hash of Kafka's default partitioner. */

const seed = 0x9747b28c
const m = 0x5bd1e995

/** 32-bit murmur2 as in Kafka's `Utils.murmur2`. */
export const murmur2 = (data: Uint8Array): number => {
  const length = data.length
  let h = seed ^ length
  const blocks = length >> 2
  for (let i = 0; i < blocks; i++) {
    const at = i << 2
    let k = data[at]! | (data[at + 1]! << 8) | (data[at + 2]! << 16) | (data[at + 3]! << 24)
    k = Math.imul(k, m)
    k ^= k >>> 24
    k = Math.imul(k, m)
    h = Math.imul(h, m) ^ k
  }
  const rest = blocks << 2
  const left = length & 3
  if (left >= 3) h ^= data[rest + 2]! << 16
  if (left >= 2) h ^= data[rest + 1]! << 8
  if (left >= 1) {
    h ^= data[rest]!
    h = Math.imul(h, m)
  }
  h ^= h >>> 13
  h = Math.imul(h, m)
  h ^= h >>> 15
  return h
}
