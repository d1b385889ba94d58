/** The settings that plans and runs of one binding share. */
import type { LetterTransform } from "../../LetterTransform.ts"
import type * as Serde from "../../Serde.ts"
import type * as Fingerprint from "../failure/fingerprint.ts"
import type * as Replay from "../replay/replayRun.ts"
import type { Tiers } from "../retry/tiers.ts"

export interface Options extends Replay.Options {
  readonly tiers: Tiers
  /** Whether copies keep the order of their keys: they go to no retry topic then. */
  readonly ordersKeys?: boolean
  /** The group that reads the retry topics: that of the binding, or one of its own. */
  readonly tierGroupId: string
  /** The user's function that groups dead letters whose headers have no fingerprint. */
  readonly ownFingerprint: Fingerprint.OwnFingerprint | undefined
  /** The user's functions that repair dead letters, by name. */
  readonly transforms: ReadonlyMap<string, LetterTransform<unknown, unknown>>
  readonly serdes: { readonly key: Serde.Any; readonly value: Serde.Any }
  /** Whether the circuit breaker of the binding is open in this process. */
  readonly isBreakerOpen: () => boolean
}
