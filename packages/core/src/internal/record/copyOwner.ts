/**
 * The owner mark of a copy in a retry or dead letter topic: the group that published it, bound to the topic (ruling 71).
 *
 * The mark names no cluster and no time, so it survives mirrors and topics that stamp their own time. A mark that is missing, or that names another topic, was
 * written by an older version, by another producer, or for another topic: it says nothing, and the copy belongs to the group that reads it.
 */
import type { ConsumerRecord, Header } from "../../ConsumerRecord.ts"
import * as CompactMark from "./compactMark.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"

/** The groups whose copies are the binding's own: its group, and the former names that it takes over. */
export interface Groups {
  readonly groupId: string
  readonly adopts: ReadonlyArray<string>
}

export const isOurs = ({ groupId, adopts }: Groups, group: string): boolean =>
  group === groupId ||
  adopts.includes(group) ||
  (group.startsWith("#") && [groupId, ...adopts].some((own) => CompactMark.ownerOf(own) === group))

const encoder = new TextEncoder()

/** The last mark that was made. Successive copies mostly have it in common. */
let last = { topic: "", groupId: "", header: { key: Names.copyOwner, value: new Uint8Array() } }

/** The header for a copy that a group publishes to a topic. Never cut: a cut name would be another group's. */
export const mark = (topic: string, groupId: string): Header => {
  if (last.topic !== topic || last.groupId !== groupId) {
    last = { topic, groupId, header: { key: Names.copyOwner, value: encoder.encode(`${topic}/${groupId}`) } }
  }
  return last.header
}

/** Adds the mark to the headers that were made for a copy. */
export const marked = (headers: Array<Header>, topic: string, groupId: string): ReadonlyArray<Header> => {
  headers.push(mark(topic, groupId))
  return headers
}

/**
 * The group that an intact mark names; `#` and a hash where the copy had no room for the name. Undefined when there is no mark, or one for another topic.
 */
export const of = ({ headers, topic }: Pick<ConsumerRecord, "headers" | "topic">): string | undefined => {
  const value = HeaderValues.text(HeaderValues.last(headers, Names.copyOwner))
  if (value === undefined) return headers.length === 0 ? undefined : CompactMark.read(topic, headers)?.owner
  if (!value.startsWith(`${topic}/`)) return undefined
  const group = value.slice(topic.length + 1)
  return group === "" ? undefined : group
}

/** The former name, of those given, under which the copy was made; undefined for a copy of another group, and for one without a mark. */
export const formerName = (
  record: Pick<ConsumerRecord, "headers" | "topic">,
  names: Iterable<string>
): string | undefined => {
  const owner = of(record)
  return owner === undefined
    ? undefined
    : Array.from(names).find((name) => name === owner || CompactMark.ownerOf(name) === owner)
}

/** The mark as its topic and its group; undefined for headers without one. */
export const partsOf = (
  headers: ReadonlyArray<Header>
): { readonly topic: string; readonly groupId: string } | undefined => {
  const value = HeaderValues.text(HeaderValues.last(headers, Names.copyOwner)) ?? ""
  const slash = value.indexOf("/")
  return slash < 0 ? undefined : { topic: value.slice(0, slash), groupId: value.slice(slash + 1) }
}

/** The group that owns the copy when that is another one; undefined for a copy of ours. */
export const foreign = (record: Pick<ConsumerRecord, "headers" | "topic">, groups: Groups): string | undefined => {
  // Nearly every copy in a retry topic is the group's own: comparing bytes costs less than reading them as text.
  if (
    HeaderValues.isSame(HeaderValues.last(record.headers, Names.copyOwner), mark(record.topic, groups.groupId).value)
  ) {
    return undefined
  }
  const owner = of(record)
  return owner === undefined || isOurs(groups, owner) ? undefined : owner
}
