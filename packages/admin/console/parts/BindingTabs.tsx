/** The title of a binding's pages, with the ways between them. */
import { to } from "../data/route.ts"
import { Title } from "./layout.tsx"

type Tab = "Binding" | "Failures" | "Runs" | "Parked keys"

const tabs: ReadonlyArray<readonly [Tab, (key: string) => string]> = [
  ["Binding", to.binding],
  ["Failures", to.failures],
  ["Runs", to.runs],
  ["Parked keys", to.parked]
]

interface Props {
  readonly binding: string
  readonly tab: Tab
  /** Below a tab, such as one record. */
  readonly detail?: string
}

/** The cluster `default` goes without saying. */
export const nameOf = (key: string): string => key.replace(/^default:/, "")

export const BindingTabs = ({ binding, tab, detail }: Props) => (
  <>
    <Title name={`${detail ?? tab} · ${nameOf(binding)}`}>
      {nameOf(binding)}
      {detail === undefined ? "" : ` · ${detail}`}
    </Title>
    <nav aria-label="Pages of the binding" class="tabs">
      {tabs.map(([name, of]) => (
        <a
          key={name}
          href={of(binding)}
          aria-current={name === tab ? (detail === undefined ? "page" : "true") : undefined}
        >
          {name}
        </a>
      ))}
    </nav>
  </>
)
