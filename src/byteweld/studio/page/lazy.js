// Long content in blocks that are filled when they come near the screen, and emptied when they
// have gone far: a megabyte of tokens is never drawn at once.

const NEAR = "900px";

export class LazyBlocks {
  constructor(container, fill) {
    this.container = container;
    this.fill = fill; // (place, element) => draws a block
    this.elements = [];
    this.observer = new IntersectionObserver((seen) => this.#look(seen), { rootMargin: NEAR });
  }

  // New content: `heights` has a guess in pixels for each block.
  show(heights) {
    this.observer.disconnect();
    while (this.elements.length > heights.length) this.elements.pop().remove();
    heights.forEach((height, place) => {
      let element = this.elements[place];
      if (!element) {
        element = document.createElement("div");
        element.className = "block";
        element.setAttribute("role", "presentation");
        element.dataset.place = place;
        this.elements.push(element);
        this.container.append(element);
      }
      // The first blocks are drawn at once, so that typing never shows an empty page.
      if (place < 2) this.#draw(element);
      else if (element.dataset.full) this.#draw(element);
      else element.style.setProperty("height", `${height}px`);
    });
    for (const element of this.elements) this.observer.observe(element);
  }

  ensure(place) {
    const element = this.elements[place];
    if (element && !element.dataset.full) this.#draw(element);
    return element;
  }

  fillAll() {
    this.observer.disconnect();
    for (const element of this.elements) if (!element.dataset.full) this.#draw(element);
  }

  close() {
    this.observer.disconnect();
  }

  #draw(element) {
    element.style.removeProperty("height");
    element.replaceChildren();
    element.dataset.full = "1";
    this.fill(Number(element.dataset.place), element);
  }

  #look(seen) {
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
