/**
 * The followers of one key that are in memory, in the order of their offsets. They are kept as bytes, in blocks, and a record is made when it is handled: as objects they would take
 * several times the memory that their bytes take, and the collector would carry each of them along.
 */
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import * as Detached from "./detached.ts"

/** The largest block that is made for more than one record. */
const mostBlockBytes = 16 * 1024

/** The cost of a block beside its bytes, measured: 350 in the heap, and what stands beside its bytes outside of it. */
const blockBytes = 448

/** Fields that consecutive records mostly share. */
interface Shape
  extends Pick<ConsumerRecord, "topic" | "partition" | "timestampType" | "transactional" | "compression"> {
  readonly names: ReadonlyArray<string>
}

/** Records one behind the other. A block is never written again where it was read: a handler may keep what it was given. */
interface Block {
  readonly bytes: Uint8Array
  readonly shapes: Array<Shape>
  /** Where the next record is written, and where the first one begins. */
  end: number
  begin: number
  /** Its bytes, and all that it costs beside them. */
  cost: number
}

/** Offset, timestamp, length of the value and number of the shape: in front of the value and the values of the headers, each behind its length. */
const headBytes = 24
const lengthBytes = 4

// Numbers go through here, and not through a view of each block.
const head = new Uint8Array(headBytes)
const offsetOf = new BigInt64Array(head.buffer, 0, 1)
const timestampOf = new Float64Array(head.buffer, 8, 1)
const lengths = new Int32Array(head.buffer, 16, 2)

/** Shared, and never changed: most keys have nothing in front, and some have no followers. */
const noBlocks: Array<Block> = []
const noRecords: ReadonlyArray<ConsumerRecord> = []
const noHeaders: ReadonlyArray<Header> = []

export class Followers {
  readonly #key: Uint8Array
  #blocks: Array<Block> = noBlocks
  /** They stand in front of the blocks. */
  #front: ReadonlyArray<ConsumerRecord> = noRecords
  /** The first record, once somebody has asked for it. */
  #first: ConsumerRecord | undefined = undefined
  length = 0
  /** The memory that they take. */
  bytes = 0

  constructor(key: Uint8Array) {
    this.#key = key
  }

  /** The same object until it is dropped. */
  get first(): ConsumerRecord | undefined {
    if (this.length > 0) this.#first ??= this.#front[0] ?? this.#make(this.#blocks[0]!)
    return this.#first
  }

  /** Where the first one is in the source, for those who do not handle it. */
  get firstAt(): { readonly offset: bigint; readonly timestamp: number } | undefined {
    const made = this.#first ?? this.#front[0]
    if (made !== undefined || this.length === 0) return made
    readHead(this.#blocks[0]!)
    return { offset: offsetOf[0]!, timestamp: timestampOf[0]! }
  }

  /** Adds a record where it takes no more memory than `room`, and answers how much it takes in addition. Undefined when it is not added. */
  add(record: ConsumerRecord, room: number): number | undefined {
    const { value, headers } = record
    const size = sizeOf(value, headers)
    const last = this.#blocks.at(-1)
    const fits = last !== undefined && last.end + size <= last.bytes.length
    const shape = fits ? last.shapes.at(-1) : lastShape
    const isLike = shape !== undefined && hasShape(shape, record, headers)
    const capacity = fits ? 0 : capacityBehind(last, size)
    const cost = (fits ? 0 : blockBytes + capacity) + (isLike ? 0 : shapeBytes(headers))
    if (cost > room) return undefined
    const block = fits ? last : this.#addBlock(capacity, shapeOf(record, headers))
    if (fits && !isLike) block.shapes.push(shapeOf(record, headers))
    write(block, record, value, headers)
    block.cost += cost
    this.bytes += cost
    this.length++
    return cost
  }

  #addBlock(capacity: number, shape: Shape): Block {
    const block = { bytes: new Uint8Array(capacity), shapes: [shape], end: 0, begin: 0, cost: 0 }
    // A first element that is pushed makes room for sixteen more.
    if (this.#blocks.length === 0) this.#blocks = [block]
    else this.#blocks.push(block)
    return block
  }

  /** Puts one in front of all others, and answers how much memory it takes. */
  addFirst(record: ConsumerRecord): number {
    this.#front = [Detached.of(record), ...this.#front]
    this.#first = undefined
    this.length++
    const cost = costInFront(record)
    this.bytes += cost
    return cost
  }

  /** Drops the first one, and answers how much memory is free. */
  drop(): number {
    if (this.length === 0) return 0
    this.#first = undefined
    this.length--
    const [inFront] = this.#front
    if (inFront !== undefined) this.#front = this.#front.slice(1)
    const free = inFront === undefined ? this.#pass(this.#blocks[0]!) : costInFront(inFront)
    this.bytes -= free
    return free
  }

  #pass(block: Block): number {
    pass(block)
    if (block.begin < block.end) return 0
    this.#blocks.shift()
    return block.cost
  }

  #make(block: Block): ConsumerRecord {
    readHead(block)
    const [offset, timestamp, length] = [offsetOf[0]!, timestampOf[0]!, lengths[0]!]
    const { names, topic, partition, timestampType, transactional, compression } = block.shapes[lengths[1]!]!
    const value = valueAt(block.bytes, block.begin + headBytes, length)
    const headers = names.length === 0 ? noHeaders : headersAt(block, names, length)
    const key = this.#key
    return { topic, partition, offset, timestamp, timestampType, transactional, compression, key, value, headers }
  }
}

const capacityBehind = (last: Block | undefined, size: number): number =>
  last === undefined ? size : Math.max(size, Math.min(mostBlockBytes, 2 * last.bytes.length))

const sizeOf = (value: Uint8Array | null, headers: ReadonlyArray<Header>): number => {
  let size = headBytes + (value?.length ?? 0)
  for (const header of headers) size += lengthBytes + (header.value?.length ?? 0)
  return size
}

const costInFront = ({ value, headers }: ConsumerRecord): number =>
  blockBytes + sizeOf(value, headers) + shapeBytes(headers)

const shapeOf = (record: ConsumerRecord, headers: ReadonlyArray<Header>): Shape => {
  if (lastShape !== undefined && hasShape(lastShape, record, headers)) return lastShape
  const { topic, partition, timestampType, transactional, compression } = record
  const names = headers.map(({ key }) => key)
  lastShape = { topic, partition, timestampType, transactional, compression, names }
  return lastShape
}

/** The records of all keys mostly have their shape in common, and share it. */
let lastShape: Shape | undefined

const hasShape = (shape: Shape, record: ConsumerRecord, headers: ReadonlyArray<Header>): boolean => {
  const { names } = shape
  if (names.length !== headers.length || shape.compression !== record.compression) return false
  if (shape.topic !== record.topic || shape.partition !== record.partition) return false
  if (shape.timestampType !== record.timestampType || shape.transactional !== record.transactional) return false
  for (let index = 0; index < names.length; index++) if (names[index] !== headers[index]!.key) return false
  return true
}

/** The cost of a shape: its own, and that of its names. */
const shapeBytes = (headers: ReadonlyArray<Header>): number => {
  let bytes = 80
  for (const { key } of headers) bytes += 32 + 2 * key.length
  return bytes
}

const write = (
  block: Block,
  { offset, timestamp }: ConsumerRecord,
  value: Uint8Array | null,
  headers: ReadonlyArray<Header>
): void => {
  const { bytes, shapes } = block
  offsetOf[0] = offset
  timestampOf[0] = timestamp
  lengths[0] = value === null ? -1 : value.length
  lengths[1] = shapes.length - 1
  bytes.set(head, block.end)
  let at = block.end + headBytes
  if (value !== null) {
    bytes.set(value, at)
    at += value.length
  }
  for (const header of headers) at = writeHeader(bytes, at, header.value)
  block.end = at
}

const writeHeader = (bytes: Uint8Array, at: number, value: Uint8Array | null): number => {
  lengths[0] = value === null ? -1 : value.length
  for (let index = 0; index < lengthBytes; index++) bytes[at + index] = head[16 + index]!
  if (value === null) return at + lengthBytes
  bytes.set(value, at + lengthBytes)
  return at + lengthBytes + value.length
}

const readHead = ({ bytes, begin }: Block): void => {
  for (let index = 0; index < headBytes; index++) head[index] = bytes[begin + index]!
}

const lengthAt = (bytes: Uint8Array, at: number): number => {
  for (let index = 0; index < lengthBytes; index++) head[16 + index] = bytes[at + index]!
  return lengths[0]!
}

const valueAt = (bytes: Uint8Array, at: number, length: number): Uint8Array | null =>
  length < 0 ? null : bytes.subarray(at, at + length)

const headersAt = (
  { bytes, begin }: Block,
  names: ReadonlyArray<string>,
  valueLength: number
): ReadonlyArray<Header> => {
  let at = begin + headBytes + Math.max(0, valueLength)
  return names.map((key) => {
    const length = lengthAt(bytes, at)
    const value = valueAt(bytes, at + lengthBytes, length)
    at += lengthBytes + Math.max(0, length)
    return { key, value }
  })
}

/** Goes past the first record. */
const pass = (block: Block): void => {
  readHead(block)
  const { names } = block.shapes[lengths[1]!]!
  let at = block.begin + headBytes + Math.max(0, lengths[0]!)
  for (let index = 0; index < names.length; index++) at += lengthBytes + Math.max(0, lengthAt(block.bytes, at))
  block.begin = at
}
