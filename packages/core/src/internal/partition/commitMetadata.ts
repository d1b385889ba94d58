/**
 * The text that a group keeps beside each committed offset: `eventbus:` and fields, with a semicolon between two of them.
 *
 * - `first-read`: when the group first read the topic, epoch milliseconds (ruling 85).
 * - `topic`: the ids of the cluster and of the topic that the offset belongs to. Kafka takes a commit for a topic that was deleted and made again: the member that sends it
 *   may not know yet. With the id, such an offset moves nobody in the new topic. A bridge copies the metadata beside the offsets that it translates: the id of another
 *   cluster says nothing.
 * - `done`: what is finished behind the offset (`finishedAhead.ts`). Only beside `topic`, which keeps it from meaning anything in another log.
 * - `epoch`: which claim of order per key is in force at the offset (`record/orderHeaders.ts`), in a retry topic of a binding with `orderingMode: "PER_KEY"`.
 * - `parked`: how many keys were parked at that time, and the lowest offset that one of them waits at, as `3@1204`: in a source of such a binding.
 * - `cut`: 1 while records in front of the offset are gone, and no owner has looked yet whether locks went with them: in a retry topic of such a binding.
 *
 * Readers pass over fields that they do not know. The first version writes no metadata, and ignores it.
 */
import type { AssignedPartition } from "../../Broker.ts"

/** The fields that a committed offset has beside its number. A field that is not there is undefined. */
export interface CommitMetadata {
  readonly firstReadMillis: number | undefined
  readonly topic: string | undefined
  /** The records that are finished behind the offset (`finishedAhead.ts`). */
  readonly done?: string | undefined
  /** The epoch in force at the offset. */
  readonly epoch?: number | undefined
  readonly parked?: ParkedKeys | undefined
  /** Whether locks of parked keys may be gone that stood in front of the offset. */
  readonly isCutOff?: boolean | undefined
}

/** The keys of a source partition that were parked when it was committed. */
export interface ParkedKeys {
  readonly keys: number
  /** The lowest offset in the source that one of them waits at. */
  readonly from: bigint
}

/** Undefined when the cluster does not give both ids. */
export const topicOf = (clusterId: string, topicId: string | undefined): string | undefined =>
  clusterId === "" || topicId === undefined ? undefined : `${clusterId}/${topicId}`

/** The id of the topic in a text; undefined where it has none. */
export const topicIdOf = (metadata: string | undefined): string | undefined => {
  const topic = metadata === undefined ? undefined : parse(metadata).topic
  return topic?.slice(topic.indexOf("/") + 1)
}

const prefix = "eventbus:"

const nothing: CommitMetadata = { firstReadMillis: undefined, topic: undefined }

/** Undefined when there is nothing to say. `first-read` stands first, since older readers look for it there. */
export const format = ({ firstReadMillis, topic }: CommitMetadata): string | undefined => {
  const fields = [
    firstReadMillis === undefined ? [] : `first-read=${Math.trunc(firstReadMillis)}`,
    topic === undefined ? [] : `topic=${topic}`
  ].flat()
  return fields.length === 0 ? undefined : prefix + fields.join(";")
}

/** The text for the commits of an assignment; undefined when there is nothing to say. */
export const ofAssigned = (
  { topicId }: Pick<AssignedPartition, "topicId">,
  clusterId: string,
  firstReadMillis?: number
): string | undefined => format({ firstReadMillis, topic: topicOf(clusterId, topicId) })

const millis = /^\d{1,16}$/
const parkedForm = /^(\d{1,9})@(\d{1,18})$/

/** Text of another client says nothing. */
export const parse = (metadata: string): CommitMetadata => {
  if (!metadata.startsWith(prefix)) return nothing
  const fields = new Map(
    metadata
      .slice(prefix.length)
      .split(";")
      .map((field) => {
        const end = field.indexOf("=")
        return [field.slice(0, end), field.slice(end + 1)] as const
      })
  )
  const firstRead = fields.get("first-read")
  const [, keys, from] = parkedForm.exec(fields.get("parked") ?? "") ?? []
  return {
    firstReadMillis: firstRead !== undefined && millis.test(firstRead) ? Number(firstRead) : undefined,
    topic: fields.get("topic"),
    ...(fields.has("done") ? { done: fields.get("done") } : {}),
    ...(fields.has("epoch") && millis.test(fields.get("epoch")!) ? { epoch: Number(fields.get("epoch")) } : {}),
    ...(keys === undefined || from === undefined ? {} : { parked: { keys: Number(keys), from: BigInt(from) } }),
    ...(fields.get("cut") === "1" ? { isCutOff: true } : {})
  }
}

/** The text with what is finished behind the offset. Nothing is added to a text that does not name the topic. */
export const withFinished = (metadata: string | undefined, done: string | undefined): string | undefined =>
  metadata === undefined || done === undefined || parse(metadata).topic === undefined
    ? metadata
    : `${metadata};done=${done}`

/** The text with the epoch that is in force at the offset. */
export const withEpoch = (metadata: string | undefined, epoch: number | undefined): string | undefined =>
  epoch === undefined ? metadata : withField(metadata, `epoch=${epoch}`)

/** The text with the keys that are parked. */
export const withParked = (metadata: string | undefined, parked: ParkedKeys | undefined): string | undefined =>
  parked === undefined ? metadata : withField(metadata, `parked=${parked.keys}@${parked.from}`)

/** The text that tells the next owner that locks may be gone. */
export const withCut = (metadata: string | undefined, isCutOff: boolean | undefined): string | undefined =>
  isCutOff === true ? withField(metadata, "cut=1") : metadata

const withField = (metadata: string | undefined, field: string): string =>
  `${metadata === undefined ? prefix : `${metadata};`}${field}`

/** The records that are finished behind a committed offset of this topic; undefined where the commit says nothing about them, or is about another topic or cluster. */
export const finishedOf = (commit: { readonly metadata: string }, topic: string | undefined): string | undefined => {
  const { topic: committedFor, done } = parse(commit.metadata)
  return topic !== undefined && committedFor === topic ? done : undefined
}

/**
 * Whether the offset belongs to a former topic of this name. One without an id, or with that of another cluster, is taken for the current topic's: the first version,
 * other clients and operators write none.
 */
export const isOfFormerTopic = (commit: { readonly metadata: string }, topic: string | undefined): boolean => {
  const committedFor = parse(commit.metadata).topic
  if (topic === undefined || committedFor === undefined) return false
  return committedFor !== topic && clusterOf(committedFor) === clusterOf(topic)
}

const clusterOf = (topic: string): string => topic.slice(0, topic.indexOf("/"))
