/** The smaller and the larger of two offsets. `Math` takes no bigint. */

export const min = (a: bigint, b: bigint): bigint => (a < b ? a : b)

export const max = (a: bigint, b: bigint): bigint => (a > b ? a : b)
