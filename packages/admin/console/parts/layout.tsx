/** What every page is made of. */
import type { ComponentChildren } from "preact"
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks"
import type { BindingSummary } from "../../src/Answers.ts"
import type { Refusal } from "../data/api.ts"

/** The title of a page takes the focus, so that a reader of the screen learns that the page is another one: before the page is painted, so that nobody types yet. */
export const Title = ({ children, name }: { readonly children: ComponentChildren; readonly name: string }) => {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${name} · Event bus`
  }, [name])
  useLayoutEffect(() => heading.current?.focus(), [])
  return (
    <h1 tabIndex={-1} ref={heading}>
      {children}
    </h1>
  )
}

export const Section = ({ title, children }: { readonly title: string; readonly children: ComponentChildren }) => (
  <section>
    <h2>{title}</h2>
    {children}
  </section>
)

/** Why something was refused. */
export const Problem = ({ refusal }: { readonly refusal: Refusal | undefined }) =>
  refusal === undefined ? null : (
    <p class="problem" role="alert">
      {refusal.message}
    </p>
  )

/** The button of a page that does not follow its figures by itself. */
export const ReadAgain = ({ reload }: { readonly reload: () => void }) => (
  <p class="buttons">
    <button type="button" onClick={reload}>
      Read again
    </button>
  </p>
)

/** An answer that is on its way, or was refused. */
export const Waiting = ({ refusal }: { readonly refusal: Refusal | undefined }) =>
  refusal === undefined ? <p class="dim">Loading…</p> : <Problem refusal={refusal} />

export interface Column<A> {
  readonly title: string
  readonly of: (row: A) => ComponentChildren
  /** Numbers stand to the right. */
  readonly isNumber?: boolean
  /** Texts of any length, which break anywhere. */
  readonly isLong?: boolean
  /** Left out on a narrow screen. */
  readonly isExtra?: boolean
}

interface TableProps<A> {
  readonly label: string
  readonly rows: ReadonlyArray<A>
  readonly columns: ReadonlyArray<Column<A>>
  readonly keyOf: (row: A) => string
  /** Its columns do not follow their texts, which is laid out faster. */
  readonly isEven?: boolean
}

const classOf = <A,>({ isNumber, isLong, isExtra }: Column<A>): string =>
  [
    ...(isNumber === true ? ["number"] : []),
    ...(isLong === true ? ["long"] : []),
    ...(isExtra === true ? ["extra"] : [])
  ].join(" ")

interface RowProps<A> {
  readonly row: A
  readonly columns: ReadonlyArray<Column<A>>
}

/** A row that has not changed is not drawn again. The first column names it. */
const Row = <A,>({ row, columns }: RowProps<A>) =>
  useMemo(
    () => (
      <tr>
        {columns.map((column, index) =>
          index === 0 ? (
            <th key={column.title} scope="row" class={classOf(column)}>
              {column.of(row)}
            </th>
          ) : (
            <td key={column.title} class={classOf(column)}>
              {column.of(row)}
            </td>
          )
        )}
      </tr>
    ),
    [row, columns]
  )

/** A table that is wider than the screen scrolls by itself, by keyboard too. */
export const Table = <A,>({ label, rows, columns, keyOf, isEven }: TableProps<A>) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls takes the focus
  <section class={isEven === true ? "table even" : "table"} aria-label={label} tabIndex={0}>
    <table>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.title} scope="col" class={classOf(column)}>
              {column.title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <Row key={keyOf(row)} row={row} columns={columns} />
        ))}
      </tbody>
    </table>
  </section>
)

/** Names and values. */
export const Facts = ({ facts }: { readonly facts: ReadonlyArray<readonly [string, ComponentChildren]> }) => (
  <dl>
    {facts
      .filter(([, value]) => value !== undefined && value !== "")
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
)

type Tone = "good" | "mild" | "bad" | "plain"

/** A state in a word. Its colour says nothing that the word does not say. */
export const Mark = ({ tone, children }: { readonly tone: Tone; readonly children: ComponentChildren }) => (
  <span class={`mark ${tone}`}>{children}</span>
)

const tones: Readonly<Record<string, Tone>> = {
  ...{ RUNNING: "good", PAUSED: "mild", STOPPED: "plain", CREATED: "plain", DESTROYED: "plain" },
  ...{ running: "good", done: "good", paused: "mild", stopped: "bad", cancelled: "plain" },
  ...{ CLOSED: "good", OPEN: "bad", HALF_OPEN: "mild" },
  ...{ connecting: "mild", crashed: "bad", fenced: "bad" }
}

/** The state of a binding in the process that serves the page, which may be none that runs it. */
export const BindingState = ({ state, outside }: Pick<BindingSummary, "state" | "outside">) =>
  outside === undefined ? <StateMark state={state} /> : <Mark tone="plain">not run here</Mark>

export const StateMark = ({ state }: { readonly state: string }) => (
  <Mark tone={Object.hasOwn(tones, state) ? (tones[state] ?? "plain") : "plain"}>
    {state.toLowerCase().replaceAll("_", "-")}
  </Mark>
)
