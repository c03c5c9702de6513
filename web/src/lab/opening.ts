// Files that come into the page: dropped, in folders too, or chosen.
import type { File as Sent } from "../api.types";
import { t } from "../i18n";
import { show } from "../numbers";
import { lang } from "../settings";
import { complain, open } from "./session";

export const MOST_BYTES = 24 << 20; // of all together, as the server takes them
const KNOWN = /\.(jsonl?|csv|ya?ml|txt)(\.gz|\.xz)?$/i;

export async function openFiles(files: readonly globalThis.File[]): Promise<void> {
  const wanted = files.length > 1 ? files.filter((file) => KNOWN.test(file.name)) : files;
  const size = wanted.reduce((sum, file) => sum + file.size, 0);
  const mb = (bytes: number) => show(bytes / (1 << 20), lang.value, 1);
  if (!wanted.length) return complain(new Error(t("openNone")));
  if (size > MOST_BYTES) return complain(new Error(t("openTooLarge", { size: mb(size), most: mb(MOST_BYTES) })));
  await open(await Promise.all(wanted.map(async (file): Promise<Sent> => ({ name: file.name, data: await base64(file) }))));
}

/** Everything that was dropped; of folders what is in them. */
export async function dropped(data: DataTransfer): Promise<globalThis.File[]> {
  const entries = [...data.items].map((item) => item.webkitGetAsEntry?.()).filter((entry) => entry !== null && entry !== undefined);
  if (!entries.some((entry) => entry.isDirectory)) return [...data.files];
  return (await Promise.all(entries.map(inside))).flat();
}

async function inside(entry: FileSystemEntry): Promise<globalThis.File[]> {
  if (entry.isFile) return [await new Promise<globalThis.File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject))];
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  const found: globalThis.File[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return found;
    found.push(...(await Promise.all(some.map(inside))).flat());
  }
}

function base64(file: Blob): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
