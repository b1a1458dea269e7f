(function(){var tree=__TREE__,box=document.getElementById('flame'),stack=[tree];
function text(us){return us<1000?us.toPrecision(3)+' \u00b5s':us<1e6?(us/1000).toPrecision(3)+' ms':(us/1e6).toPrecision(3)+' s'}
function draw(n,of){var c=document.createElement('div');c.className='c';c.style.width=(100*n[1]/of)+'%';
var b=document.createElement('b');b.className=n[2];b.textContent=n[0];b.title=n[0]+' \u2014 '+text(n[1])+', '+(100*n[1]/tree[1]).toFixed(1)+' %';
b.onclick=function(){stack.push(n);show()};c.appendChild(b);if(n[3].length){var r=document.createElement('div');r.className='r';
n[3].forEach(function(m){r.appendChild(draw(m,n[1]))});c.appendChild(r)}return c}
function show(){box.textContent='';var n=stack[stack.length-1];box.appendChild(draw(n,n[1]))}
document.getElementById('out').onclick=function(){if(stack.length>1){stack.pop();show()}};show()})();
