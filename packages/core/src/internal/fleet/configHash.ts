/** A hash of the bindings of a process and their plain settings. Functions do not count: nobody can compare them. */

import * as Format from "../base/entryFormat.ts"
import { murmur2 } from "../port/murmur2.ts"
import type { BindingDefinition } from "../settings/bindingDefinition.ts"
import * as BindingKey from "../settings/bindingKey.ts"

/** Eight hexadecimal digits, computed anew only for other bindings. */
export const make = () => {
  let hashed: { readonly of: ReadonlyArray<BindingDefinition<unknown>>; readonly text: string } | undefined
  return (definitions: ReadonlyArray<BindingDefinition<unknown>>): string => {
    const isSame =
      hashed?.of.length === definitions.length && definitions.every((each, index) => each === hashed?.of[index])
    if (hashed === undefined || !isSame) hashed = { of: definitions, text: hashOf(definitions) }
    return hashed.text
  }
}

const hashOf = (definitions: ReadonlyArray<BindingDefinition<unknown>>): string => {
  const lines = definitions.map((each) => `${BindingKey.of(each)} ${JSON.stringify(plain(each))}`).toSorted()
  return (murmur2(Format.bytesOf(lines.join("\n"))) >>> 0).toString(16).padStart(8, "0")
}

/** Names and settings that are texts, numbers and booleans, with those of the retry tiers, of the order per key and of further topics. A binding of one topic has the hash that older versions give it. */
const plain = (definition: BindingDefinition<unknown>) => [
  Object.entries(definition).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value)),
  definition.tiers.topics,
  ...(definition.orderingMode === "PER_KEY" ? [definition.perKey] : []),
  ...definition.otherSources.map(({ topic, tiers, deadLetterTopic }) => [topic, tiers.topics, deadLetterTopic])
]
