/**
 * How much a partition holds that is fetched and not finished.
 */
import type { WaterMarks } from "./partitionOptions.ts"

export class Buffered implements WaterMarks {
  records = 0
  bytes = 0

  add(records: number, bytes: number): void {
    this.records += records
    this.bytes += bytes
  }

  remove(records: number, bytes: number): void {
    this.records -= records
    // The bytes of a part of a chunk are a share of its bytes: their sum may miss a fraction of one.
    this.bytes = this.records === 0 ? 0 : this.bytes - bytes
  }

  isAt(high: WaterMarks): boolean {
    return this.records >= high.records || this.bytes >= high.bytes
  }

  isHalf(high: WaterMarks): boolean {
    return this.records <= high.records / 2 && this.bytes <= high.bytes / 2
  }
}
