/** The codec of each API by its name. */
import type { Apis, Codec } from "./apis.ts"
import * as ConsumerGroups from "./consumerGroups.ts"
import * as Groups from "./groups.ts"
import * as Members from "./members.ts"
import * as Metadata from "./metadata.ts"
import * as Offsets from "./offsets.ts"
import * as Records from "./records.ts"
import * as Topics from "./topics.ts"
import * as Transactions from "./transactions.ts"

export const codecs: { readonly [K in keyof Apis]: Codec<K> } = {
  ...Metadata,
  ...Members,
  ...ConsumerGroups,
  ...Offsets,
  ...Records,
  ...Transactions,
  ...Topics,
  ...Groups
}
