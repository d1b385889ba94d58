/** A module for `--outbox` whose layer provides no store. */
import { Layer } from "effect"

export default Layer.empty
