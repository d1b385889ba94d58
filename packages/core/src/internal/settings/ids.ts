/**
 * The kinds of ids that Kafka's protocol carries. It has 16 bits for the length of a text, and a broker that gets a longer one closes the connection without an answer: the
 * client would ask again for ever.
 */
import * as Kinds from "../../Kinds.ts"
import * as TopicName from "../../TopicName.ts"
import * as DerivedNames from "../base/derivedNames.ts"
import { shown } from "../base/shown.ts"

const longestOnWire = 32_767

/** Most bytes of a binding's group: transactional ids have a topic's name and more after it, 261 bytes at most. */
const longestGroup = 32_500

const encoder = new TextEncoder()
const bytesOf = (text: string): number => encoder.encode(text).length

/** A name that is not too long. `measured` is the form of it that goes to the broker. */
const nameOf =
  (most: number, why: string, measured: (name: string) => string = (name) => name): Kinds.Kind =>
  (path, found) => {
    const problems = Kinds.name(path, found)
    if (problems.length > 0) return problems
    const bytes = bytesOf(measured(found as string))
    return bytes <= most ? [] : [{ path, found: `a text of ${bytes} bytes`, allowed: `at most ${most} bytes${why}` }]
  }

/** A group, or a transactional id, as it goes to the broker. */
export const onWire = nameOf(longestOnWire, " of UTF-8, the most that Kafka's protocol can carry")

/** The group of a binding: other groups and transactional ids are made of it. */
export const ofBinding = nameOf(
  longestGroup,
  ` of UTF-8, where each of % / : counts as three: Kafka takes ${longestOnWire}, and transactional ids have more after the group`,
  DerivedNames.escaped
)

/** A `group.instance.id`, which the broker checks like the name of a topic. */
export const member: Kinds.Kind = (path, found) => {
  const reason = typeof found === "string" ? TopicName.illegal(found) : "it is no text"
  return reason === undefined
    ? []
    : [
        {
          path,
          found: typeof found === "string" ? `'${found.slice(0, 300)}'` : shown(found),
          allowed: `a legal group.instance.id: ${reason}`
        }
      ]
}
