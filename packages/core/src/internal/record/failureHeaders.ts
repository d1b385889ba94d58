/**
 * Reads why a dead letter failed, and which group it belongs to. Nobody but the connector that dead-lettered the record last is believed: a copy that an older version made
 * carries these headers of an earlier failure, and they stand before its own then.
 */
import type { Header } from "../../ConsumerRecord.ts"
import type { DeadLetterReason, ErrorSummary } from "../../Failure.ts"
import * as CauseChain from "../failure/causeChain.ts"
import * as Fingerprint from "../failure/fingerprint.ts"
import { isWrapper } from "../failure/wrapper.ts"
import * as Names from "./headerNames.ts"
import * as HeaderValues from "./headerValues.ts"

/** The part of a dead letter that tells about its failure. */
interface Letter {
  readonly headers: ReadonlyArray<Header>
  readonly originalTopic: string
  readonly dltReason: DeadLetterReason | undefined
  readonly lastExceptionClass: string
  readonly lastExceptionMessage: string
}

/** Why it failed, and its group. */
interface Grouped {
  readonly cause: ReadonlyArray<ErrorSummary>
  readonly fingerprint: string
}

export const read = (letter: Letter): Grouped => {
  const cause = CauseChain.read(ownText(letter, Names.lastExceptionCause) ?? "")
  return { cause, fingerprint: written(letter) ?? Fingerprint.of(described(letter, cause)) }
}

/** The dead letter with the fingerprint of the user's function, where its headers have none. */
export const regrouped = <A extends Letter & Grouped>(letter: A, own: Fingerprint.OwnFingerprint | undefined): A =>
  own === undefined || written(letter) !== undefined
    ? letter
    : { ...letter, fingerprint: Fingerprint.of(described(letter, letter.cause), own) }

/** The place that its failure comes from, as far as its headers tell. */
export const frameOf = (letter: Letter & Grouped): string | undefined =>
  Fingerprint.frameOrPath(described(letter, letter.cause))

const written = (letter: Letter): string | undefined => {
  const text = ownText(letter, Names.lastExceptionFingerprint)
  return Fingerprint.isFingerprint(text) ? text : undefined
}

/** The text that the connector wrote when it dead-lettered the record last. */
const ownText = ({ headers }: Letter, name: string): string | undefined => {
  const reason = headers.findLastIndex(({ key }) => key === Names.dltReason)
  const found = headers.findLastIndex(({ key }) => key === name)
  return reason !== -1 && found > reason ? HeaderValues.text(headers[found]!.value) : undefined
}

const described = (letter: Letter, causes: ReadonlyArray<ErrorSummary>): Fingerprint.Fingerprinted => {
  const { dltReason, lastExceptionClass, lastExceptionMessage, originalTopic, headers } = letter
  const error = { className: lastExceptionClass, message: lastExceptionMessage }
  const [cause] = causes
  return {
    ...{ reason: dltReason, exceptionClass: lastExceptionClass, message: lastExceptionMessage, causes },
    ...{ originalTopic, decodePath: HeaderValues.text(HeaderValues.last(headers, Names.decodePath)) },
    subject:
      isWrapper(error) && cause !== undefined
        ? { ...cause, stackTrace: "" }
        : { ...error, stackTrace: HeaderValues.text(HeaderValues.last(headers, Names.lastExceptionStacktrace)) ?? "" }
  }
}
