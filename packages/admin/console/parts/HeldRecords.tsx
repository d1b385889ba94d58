/** The records that wait for the decision of an operator, each with the two decisions. */
import type { AllHeld, HeldRecord } from "../../src/HeldAnswers.ts"
import { part, post } from "../data/api.ts"
import { type Permission, useAnswer, usePermissions } from "../data/hooks.ts"
import { Ask } from "./Ask.tsx"
import { announce } from "./announce.tsx"
import { nameOf } from "./BindingTabs.tsx"
import { type Column, Problem, Table } from "./layout.tsx"
import { Since } from "./text.tsx"

const verbs = {
  skip: {
    verb: "Skip",
    needs: "discard",
    is: "is skipped",
    means: "It is dropped for good, and its partition goes on."
  },
  "dead-letter": {
    verb: "Dead-letter",
    needs: "operate",
    is: "is a dead letter",
    means: "It goes to the dead letter topic, and its partition goes on."
  }
} as const

const placeOf = ({ topic, position }: HeldRecord): string => `${topic} ${position}`

const kinds = {
  record: "Holds its partition",
  candidate: "Is all that the circuit breaker has to try",
  batch: "Cannot be read"
} as const

const whyOf = ({ kind, exceptionClass, message, lastOffset, detail }: HeldRecord): string =>
  [
    `${kinds[kind]}${lastOffset === undefined ? "" : `, to ${lastOffset}`}`,
    ...[exceptionClass, message, detail].filter((each) => each !== undefined && each !== "")
  ].join(": ")

interface DecisionsProps {
  readonly binding: string
  readonly record: HeldRecord
  readonly may: (permission: Permission) => boolean
  readonly decided: () => void
}

const Decisions = ({ binding, record, may, decided }: DecisionsProps) => (
  <>
    {record.decisions
      .filter((decision) => may(verbs[decision].needs))
      .map((decision) => {
        const { verb, is, means } = verbs[decision]
        const place = placeOf(record)
        return (
          <Ask
            key={decision}
            verb={verb}
            question={`${verb} ${place} of ${nameOf(binding)}?`}
            isDanger={decision === "skip"}
            asksWhy
            act={async (reason) => {
              const query = `topic=${part(record.topic)}&reason=${part(reason)}`
              await post(`bindings/${part(binding)}/held/${part(record.position)}/${decision}?${query}`)
              announce(`${place} ${is}.`)
              decided()
            }}
          >
            <p>{whyOf(record)}</p>
            <p>{means}</p>
          </Ask>
        )
      })}
  </>
)

interface Props {
  readonly binding: string
  /** How many there are, as the state of the binding says: another number asks anew. */
  readonly count: number
  readonly decided?: () => void
}

/** Nothing while none waits. */
export const HeldRecords = ({ binding, count, decided }: Props) => {
  const may = usePermissions(binding)
  const { value, refusal, reload } = useAnswer<AllHeld>(
    count === 0 ? undefined : `bindings/${part(binding)}/held`,
    () => 2_000
  )
  if (count === 0) return null
  if (value === undefined) return <Problem refusal={refusal} />
  const columns: ReadonlyArray<Column<HeldRecord>> = [
    { title: "Record", of: placeOf },
    { title: "Why", of: whyOf, isLong: true },
    { title: "Since", of: ({ since }) => <Since at={since} /> },
    ...(may("operate") || may("discard")
      ? [
          {
            title: "Decision",
            of: (record: HeldRecord) => (
              <Decisions
                {...{ binding, record, may }}
                decided={() => {
                  reload()
                  decided?.()
                }}
              />
            )
          }
        ]
      : [])
  ]
  return (
    <Table
      label={`Records of ${nameOf(binding)} that wait for a decision`}
      rows={value.held}
      columns={columns}
      keyOf={placeOf}
    />
  )
}
