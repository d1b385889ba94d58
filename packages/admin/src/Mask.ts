/**
 * Functions of the program that hide parts of records in the answers about dead letters and dead events, from everybody.
 *
 * ```ts
 * import { EventBusAdmin, type Mask } from "@eventbus/admin"
 * import { Predicate } from "effect"
 *
 * const withoutCard: Mask.Mask = ({ key, value, headers }) => ({
 *   key,
 *   value: Predicate.isObject(value) ? { ...value, card: "****" } : undefined,
 *   headers
 * })
 *
 * export const Admin = EventBusAdmin.layer({ mask: withoutCard, maskText: (text) => text.replace(/\d{12,19}/g, "****") })
 * ```
 */

/** A header as text. A value that is no text is in base 64; undefined for none. */
export interface Header {
  /** The same name may occur more than once. */
  readonly name: string
  /** See above. */
  readonly value: string | undefined
}

/** The content of a dead letter, or of a dead event of the outbox, whose key is the id of its aggregate. */
export interface Letter {
  /** The topic that the record was first in; of a dead event its type, which is the topic that a relay gives it by default. */
  readonly topic: string
  /** The key as today's serde reads it, bytes where it cannot; null for none. */
  readonly key: unknown
  /** The value in the same way. The payload of a dead event is JSON by its media type, else bytes. */
  readonly value: unknown
  /** All headers, in order. */
  readonly headers: ReadonlyArray<Header>
}

/** The parts that an answer may show. An absent part, and one that JSON cannot hold, is hidden. */
export interface Masked {
  /** Shown as the key. */
  readonly key?: unknown
  /** Shown as the value. */
  readonly value?: unknown
  /** Shown as the headers. */
  readonly headers?: ReadonlyArray<Header>
}

/** Answers what of a dead letter may be shown. Key, value and headers are hidden where it throws, or answers something else; the log has its error. */
export type Mask = (letter: Letter) => Masked

/** Answers what may be shown of a text that may quote a record: a key in a list, the message of an error, a reason in words. The text is hidden where it throws, or answers no text. */
export type MaskText = (text: string) => string

/** Both functions. */
export interface Masking {
  /** Of one dead letter in full. */
  readonly mask: Mask
  /** Of texts. Default: beside a mask, texts that may quote a record are hidden. */
  readonly maskText?: MaskText
}

/** How much of records an answer has: nothing, everything, or what a program's functions leave. */
export type Payload = boolean | Masking
