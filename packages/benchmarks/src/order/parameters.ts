/** The load of `bench order`. */
export type Parameters = Readonly<
  Record<
    | "records"
    | "keys"
    | "bytes"
    | "delayMillis"
    | "failingKeys"
    | "perKey"
    | "followers"
    | "hotDelayMillis"
    | "unparked"
    | "parked"
    | "presentMillis",
    number
  >
>
