// Long content in blocks that are filled when they come near the viewport and emptied when they
// leave it, so that a megabyte of tokens is never drawn at once.

const NEAR = "900px";

// The first item of each block, and the number of items: about `most` items per block, up to twice
// that to end at a line end. Item n ends at byte `ends[n]`.
export function blocksOf(bytes, ends, most) {
  const firsts = [0];
  let lineEnd = 0;
  for (let index = 0; index < ends.length; index++) {
    if (bytes[ends[index] - 1] === 10) lineEnd = index + 1;
    const first = firsts[firsts.length - 1];
    if (index + 1 - first < most) continue;
    const cut = lineEnd > first ? lineEnd : index + 1 - first >= 2 * most ? index + 1 : 0;
    if (cut) firsts.push(cut);
  }
  if (firsts[firsts.length - 1] < ends.length) firsts.push(ends.length);
  return firsts;
}

export class LazyBlocks {
  // `scrolls`: the container is a scroll box, and not part of the page's own scrolling.
  constructor(container, fill, scrolls = false) {
    this.container = container;
    this.fill = fill; // (index, element): draws a block
    this.elements = [];
    this.observer = new IntersectionObserver((seen) => this.#update(seen), {
      root: scrolls ? container : null,
      rootMargin: NEAR,
    });
  }

  // Show new content: `heights` estimates the height of each block in pixels.
  show(heights) {
    this.observer.disconnect();
    while (this.elements.length > heights.length) this.elements.pop().remove();
    heights.forEach((height, index) => {
      let element = this.elements[index];
      if (!element) {
        element = document.createElement("div");
        element.className = "block";
        element.setAttribute("role", "presentation");
        element.dataset.index = index;
        this.elements.push(element);
        this.container.append(element);
      }
      // The first blocks are drawn immediately, so that typing never shows an empty page.
      if (index < 2) this.#draw(element);
      else if (element.dataset.full) this.#draw(element);
      else element.style.setProperty("height", `${height}px`);
    });
    for (const element of this.elements) this.observer.observe(element);
  }

  ensure(index) {
    const element = this.elements[index];
    if (element && !element.dataset.full) this.#draw(element);
    return element;
  }

  close() {
    this.observer.disconnect();
  }

  #draw(element) {
    element.style.removeProperty("height");
    element.replaceChildren();
    element.dataset.full = "1";
    this.fill(Number(element.dataset.index), element);
  }

  #update(seen) {
    for (const { target, isIntersecting, boundingClientRect } of seen) {
      if (isIntersecting && !target.dataset.full) this.#draw(target);
      else if (!isIntersecting && target.dataset.full) {
        target.style.setProperty("height", `${boundingClientRect.height}px`);
        target.replaceChildren();
        delete target.dataset.full;
      }
    }
  }
}
