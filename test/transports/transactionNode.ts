/** A node that leads the one partition of every topic, and coordinates one transactional producer. It keeps a journal of its requests. */
import { Effect, type Scope } from "effect"
import { Reader } from "../../packages/kafka-client/src/internal/protocol/reader.ts"
import { Writer } from "../../packages/kafka-client/src/internal/protocol/writer.ts"
import { answering, apiKey, type FakeBroker, makeFakeBroker, type Request } from "./fakeBroker.ts"

const names = new Map([
  [0, "Produce"],
  [22, "InitProducerId"],
  [24, "AddPartitionsToTxn"],
  [25, "AddOffsetsToTxn"],
  [26, "EndTxn"],
  [28, "TxnOffsetCommit"]
])

/** The versions that a broker of Kafka 4 speaks. */
const spoken = [
  [0, { min: 3, max: 13 }],
  [18, { min: 0, max: 4 }],
  [22, { min: 0, max: 5 }],
  [24, { min: 0, max: 5 }],
  [25, { min: 0, max: 4 }],
  [26, { min: 0, max: 5 }],
  [28, { min: 0, max: 6 }]
] as const

const producerId = 7n
const fencedEpoch = 47

export interface TransactionNode {
  readonly broker: FakeBroker
  /** The name and the version of each request, the epoch of its producer, and what else tells requests apart. */
  readonly journal: Array<string>
  /** Error codes of the next answers, by the name of the request. */
  readonly errors: Map<string, Array<number>>
  /** The next request of this name is taken, and its connection ends in place of the answer. */
  cutAfter: string | undefined
}

/** The entry of a request in the journal. */
interface Said {
  readonly epoch: number
  readonly detail: string
}

const ofBatch = (batch: Buffer): Said => ({ epoch: batch.readInt16BE(51), detail: `sequence ${batch.readInt32BE(53)}` })

const produced = (body: Buffer, version: number): Said => {
  const reader = new Reader(body)
  if (version < 9) {
    reader.nullableString()
    reader.skip(10)
    reader.string()
    reader.skip(8)
    return ofBatch(reader.bytes())
  }
  reader.tags()
  reader.compactString()
  reader.skip(6)
  reader.unsignedVarint()
  reader.compactString()
  reader.unsignedVarint()
  reader.int32()
  return ofBatch(reader.compactBytes())
}

/** Of requests that begin with the transactional id, in TxnOffsetCommit followed by the group. */
const identified = (name: string, body: Buffer, isFlexible: boolean): Said => {
  const reader = new Reader(body)
  const text = () => (isFlexible ? reader.compactString() : reader.string())
  if (isFlexible) reader.tags()
  text()
  if (name === "TxnOffsetCommit") text()
  reader.int64()
  const epoch = reader.int16()
  return { epoch, detail: name === "EndTxn" ? (reader.int8() === 1 ? "commit" : "abort") : "" }
}

const saidIn = (name: string, { apiVersion, body }: Request): Said => {
  if (name === "Produce") return produced(body, apiVersion)
  if (name === "InitProducerId") return { epoch: -1, detail: "" }
  return identified(name, body, apiVersion >= 3)
}

const topic = "out"

/** The answer of a request, in the version of the request. */
const answerOf = (name: string, version: number, code: number, epoch: number): Writer => {
  const writer = new Writer()
  if (name === "InitProducerId") return writer.int32(0).int16(code).int64(producerId).int16(epoch)
  if (name === "AddOffsetsToTxn") return writer.int32(0).int16(code)
  if (name === "AddPartitionsToTxn") return writer.int32(0).int32(1).string(topic).int32(1).int32(0).int16(code)
  if (name === "EndTxn")
    return version < 5
      ? writer.int32(0).int16(code)
      : writer.noTags().int32(0).int16(code).int64(producerId).int16(epoch).noTags()
  if (name === "TxnOffsetCommit")
    return writer.noTags().int32(0).int8(2).compactString("in").int8(2).int32(0).int16(code).noTags().noTags().noTags()
  const result = () => writer.int32(0).int16(code).int64(0n).int64(-1n).int64(0n)
  if (version < 9) {
    writer.int32(1).string(topic).int32(1)
    return result().int32(0)
  }
  writer.noTags().int8(2).compactString(topic).int8(2)
  return result().int8(1).compactNullableString(null).noTags().noTags().int32(0).noTags()
}

const metadata = ({ port }: FakeBroker): Writer =>
  new Writer()
    .int32(0)
    .int32(1)
    .int32(1)
    .string("127.0.0.1")
    .int32(port)
    .nullableString(null)
    .string("fake")
    .int32(1)
    .int32(1)
    .int16(0)
    .string(topic)
    .boolean(false)
    .int32(1)
    .int16(0)
    .int32(0)
    .int32(1)
    .int32s([1])
    .int32s([1])
    .int32(0)

const take = (node: TransactionNode, name: string, request: Request, epochs: { current: number }): Writer => {
  const { apiVersion } = request
  const { epoch, detail } = saidIn(name, request)
  node.journal.push([name, apiVersion, ...(epoch < 0 ? [] : [`epoch ${epoch}`]), detail].join(" ").trim())
  const code = node.errors.get(name)?.shift() ?? 0
  if (code !== 0) return answerOf(name, apiVersion, code, -1)
  if (name === "InitProducerId") epochs.current++
  else if (name === "EndTxn" && apiVersion >= 5) {
    // A request that was answered already is answered again.
    if (epoch === epochs.current) epochs.current++
    else if (epoch !== epochs.current - 1) return answerOf(name, apiVersion, fencedEpoch, -1)
  } else if (epoch !== epochs.current) return answerOf(name, apiVersion, fencedEpoch, -1)
  return answerOf(name, apiVersion, 0, epochs.current)
}

/** `transactionVersion`: of the cluster's feature; without it, the cluster has no features. */
export const makeTransactionNode = (
  transactionVersion: number | undefined
): Effect.Effect<TransactionNode, never, Scope.Scope> =>
  Effect.map(makeFakeBroker(answering), (broker) => {
    const epochs = { current: -1 }
    const node: TransactionNode = { broker, journal: [], errors: new Map(), cutAfter: undefined }
    broker.spoken = new Map([...broker.spoken, ...spoken])
    if (transactionVersion !== undefined) broker.features = new Map([["transaction.version", transactionVersion]])
    broker.behave = (request) => {
      const name = names.get(request.apiKey)
      if (request.apiKey === apiKey.metadata) return request.answer(metadata(broker))
      if (name === undefined) return request.answer()
      const answer = take(node, name, request, epochs)
      if (node.cutAfter !== name) return request.answer(answer)
      node.cutAfter = undefined
      request.socket.destroy()
    }
    return node
  })
