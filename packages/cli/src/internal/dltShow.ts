/**
 * `eventbus dlt show`: one dead letter in full.
 */
import { type DeadLetterList, DeadLetterSelection, LogFormat, type Serde } from "@eventbus/core"
import { Console, Effect, Result } from "effect"
import { Argument, Command } from "effect/cli"
import { handlers, shared, withLetters } from "./deadLetters.ts"
import { refuse, refuseUsage } from "./failures.ts"
import { columns, jsonText, timeText } from "./text.ts"

export const show = Command.make(
  "show",
  {
    file: shared.file,
    binding: shared.binding,
    position: Argument.String("position").pipe(Argument.withDescription("partition@offset in the dead letter topic")),
    handlers,
    profile: shared.profile,
    brokers: shared.brokers,
    json: shared.json
  },
  Effect.fnUntraced(function* ({ position: text, json, ...source }) {
    const position = DeadLetterSelection.parsePosition(text)
    if (position === undefined) {
      return yield* refuseUsage(`the position is "${text}"; allowed is partition@offset, such as 3@17`)
    }
    const found = yield* withLetters(source, (letters) => letters.letter(position))
    if (found === undefined) return yield* refuse(`the dead letter topic has no record at ${text}`)
    const shown = shownOf(found)
    yield* Console.log(json ? jsonText(shown) : textOf(shown))
  })
).pipe(
  Command.withShortDescription("Shows one dead letter"),
  Command.withDescription(
    "Shows one dead letter: why it failed, where it came from, its headers, and key and value as the serdes of --handlers read them."
  ),
  Command.withExamples([
    { command: "eventbus dlt show app.yaml orders 3@17", description: "With bytes as text" },
    { command: "eventbus dlt show app.yaml orders 3@17 --handlers ./handlers.ts --json", description: "Decoded" }
  ])
)

type Shown = ReturnType<typeof shownOf>

const shownOf = ({ letter, state, unreadable, key, value }: DeadLetterList.DecodedDeadLetter) => ({
  position: DeadLetterSelection.formatPosition(letter.record),
  topic: letter.record.topic,
  state,
  unreadable: unreadable?.detail,
  fingerprint: letter.fingerprint,
  exceptionClass: letter.lastExceptionClass,
  exceptionMessage: letter.lastExceptionMessage,
  causes: letter.cause,
  reason: letter.dltReason,
  detail: letter.dltDetail,
  deadLettered: timeText(letter.dltTimestamp),
  original: `${letter.originalTopic}-${letter.originalPartition}@${letter.originalOffset}`,
  totalAttempts: letter.totalAttempts,
  tiers: letter.tierHistory,
  replayCount: letter.replayCount,
  owner: letter.owner,
  key: contentOf(letter.key, key),
  value: contentOf(letter.value, value),
  headers: letter.headers.map(({ key: name, value: bytes }) => ({ name, value: textIn(bytes) }))
})

const contentOf = (bytes: Uint8Array | null, decoded: Result.Result<unknown, Serde.DecodeFailure> | undefined) => ({
  bytes: bytes?.length,
  text: textIn(bytes),
  ...(decoded === undefined
    ? {}
    : Result.isFailure(decoded)
      ? { problem: decoded.failure.message }
      : decoded.success instanceof Uint8Array
        ? {}
        : { decoded: decoded.success })
})

/** Bytes that are no text are shown in hexadecimal digits. */
const textIn = (bytes: Uint8Array | null): string | undefined => {
  if (bytes === null) return undefined
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    return `0x${Buffer.from(bytes).toString("hex")}`
  }
}

const textOf = (shown: Shown): string => {
  const { topic, position, state, unreadable, exceptionClass, exceptionMessage, causes, headers } = shown
  const rows: ReadonlyArray<readonly [string, string | undefined]> = [
    ["error", `${exceptionClass}: ${exceptionMessage}`],
    ...causes.map(({ className, message }) => ["caused by", `${className}: ${message}`] as const),
    ["group", shown.fingerprint],
    ["dead-lettered", [shown.deadLettered, shown.reason, shown.detail].filter((part) => part !== undefined).join("  ")],
    ["came from", shown.original],
    ["attempts", String(shown.totalAttempts)],
    ["replays", String(shown.replayCount)],
    ["owner", shown.owner],
    ["key", contentText(shown.key)],
    ["value", contentText(shown.value)],
    ...headers.map(({ name, value }) => ["header", `${name}: ${value ?? ""}`] as const)
  ]
  const known = unreadable === undefined ? rows : [["unreadable", unreadable] as const]
  const lines = known.flatMap(([name, text]) => (text === undefined ? [] : [[name, LogFormat.oneLine(text)]]))
  return [`${topic}-${position}  ${state}`, ...columns(lines)].join("\n")
}

const contentText = (content: Shown["key"]): string | undefined =>
  "problem" in content ? `${content.text ?? "none"}  (${content.problem})` : content.text
